/* `import ... from 'perilune/mg-dbx'`: what mg-dbx and mg-dbx-bdb export. */
import {createRequire} from 'node:module';

const flavour = createRequire(import.meta.url)('../lib/mgdbx/dbx.js');

export const {dbx, dbxbdb, mglobal, mcursor, mclass} = flavour;
export default flavour;
