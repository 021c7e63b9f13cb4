import { QueryClient } from "@tanstack/query-core";
import { ApiError } from "./api-error.ts";

const MOST_ATTEMPTS = 3;

/** What the pages have read of the server. Data is shown at once and read again when it is older than some seconds. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      gcTime: 300_000,
      // What the server refuses it refuses again; a server that restarts answers soon.
      retry: (failures, error) => failures < MOST_ATTEMPTS - 1 && error instanceof ApiError && error.isTemporary,
      retryDelay: (failures, error) => waitMs(error) ?? 500 * 2 ** failures,
    },
  },
});

function waitMs(error: unknown): number | undefined {
  return error instanceof ApiError ? error.details.retryAfterMs : undefined;
}
