/* `import ... from 'perilune/documents'`: documents of JSON. */
import {createRequire} from 'node:module';

const made = createRequire(import.meta.url)('./documents.js');

export const {Document, document} = made;
export default made;
