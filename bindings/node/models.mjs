/* `import ... from 'perilune/models'`: the patterns on globals. */
import {createRequire} from 'node:module';

const made = createRequire(import.meta.url)('./models.js');

export const {set, hash, records, columns, relations, network, Set, Hash, Records, Columns, Relations, Network} = made;
export default made;
