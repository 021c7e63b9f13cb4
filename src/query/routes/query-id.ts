import { z } from "zod";

/**
 * The id of a query, by which its caller finds it while it runs and ends it. Clients send one of their own, so that they
 * can end a query before they have heard anything of it; to others it means nothing.
 */
export const queryId = z.guid("is a UUID").transform((id) => id.toLowerCase());

export const QUERY_ID_HEADER = "X-Engine-Query-ID";

export const queryIdHeader = {
  "x-engine-query-id": queryId
    .optional()
    .describe("A UUID for this query, by which it is found and ended; no other running query of yours may have it."),
};
