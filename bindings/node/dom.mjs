/* `import ... from 'perilune/dom'`: documents of XML. */
import {createRequire} from 'node:module';

const documents = createRequire(import.meta.url)('./lib/dom/index.js');

export const {dom, Dom, DomNode} = documents;
export default documents;
