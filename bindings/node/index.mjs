/* `import ... from 'perilune'`: the native interface. */
import {createRequire} from 'node:module';

const perilune = createRequire(import.meta.url)('./lib/perilune/index.js');

export const {open, Database, Node, Watch, PeriluneError, EMPTY_LIST, EMPTY_MAP, version} = perilune;
export default perilune;
