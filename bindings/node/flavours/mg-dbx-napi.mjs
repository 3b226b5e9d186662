/* `import ... from 'perilune/mg-dbx-napi'`: the names are static, as importers of mg-dbx-napi expect. */
import {createRequire} from 'node:module';

const flavour = createRequire(import.meta.url)('../lib/mgdbx/napi.js');

export const {server, mglobal, mcursor, mclass} = flavour;
export default flavour;
