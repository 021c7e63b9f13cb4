/**
 * Helper macros of translated queries: the statement that makes each, by its name, which begins with `kql_`. A query
 * process makes those that a query calls in the query's own database.
 */
export const MACROS: ReadonlyMap<string, string> = new Map();
