import { join } from "node:path";

/**
 * The folders of a query process, within its own:
 *
 *     in/    what its query reads: links to exactly the extents of the query, and files of system tables. The server
 *            puts them there and takes them away; the process only reads.
 *     out/   what it writes: results and spilled data.
 *
 * DuckDB opens nothing outside of the two, and where the system can confine a process (`io/confinement/`), neither does
 * anything else in it.
 */
export const inputFolder = (folder: string): string => join(folder, "in");
export const outputFolder = (folder: string): string => join(folder, "out");

/** Where DuckDB puts what does not fit into memory. */
export const spillFolder = (folder: string): string => join(outputFolder(folder), "spill");
