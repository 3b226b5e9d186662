/* `import ... from 'perilune/lists'`: lists of documents. */
import {createRequire} from 'node:module';

const made = createRequire(import.meta.url)('./lists.js');

export const {List, list} = made;
export default made;
