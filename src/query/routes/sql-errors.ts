/** What a request that has SQL run over tables may be refused with, whatever else its route may say. */
export const SQL_ERRORS = [
  "parse_error",
  "invalid_query",
  "execution_error",
  "invalid_header",
  "invalid_parameter",
  "database_not_found",
  "table_not_found",
  "snapshot_expired",
  "budget_exceeded",
  "too_many_requests",
  "query_failed",
  "unavailable",
] as const;
