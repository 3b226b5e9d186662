/* `import ... from 'perilune/keyvalue'`: documents by key. */
import {createRequire} from 'node:module';

const made = createRequire(import.meta.url)('./keyvalue.js');

export const {KeyValue, keyvalue} = made;
export default made;
