/* `import ... from 'perilune/graph'`: graphs of vertices and edges. */
import {createRequire} from 'node:module';

const graphs = createRequire(import.meta.url)('./lib/graph/index.js');

export const {create, open, Graph, Traversal, Path} = graphs;
export default graphs;
