export {dbx, dbxbdb, mglobal, mcursor, mclass, default} from 'perilune/mg-dbx';
