/* `import ... from 'perilune/nodem'`: what NodeM exports. */
import {createRequire} from 'node:module';

const flavour = createRequire(import.meta.url)('../lib/nodem/index.js');

export const {Ydb, Gtm} = flavour;
export default flavour;
