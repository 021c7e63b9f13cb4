import { z } from "zod";

import { LIMITS } from "../../core/limits.ts";
import { defineRoute } from "../../server/route.ts";
import { databaseHeader } from "../../server/schemas.ts";
import {
  eventStream,
  eventStreamResponse,
  JsonText,
  mapEvents,
  type ServerSentEvent,
} from "../../server/server-sent-events.ts";
import { afterSnapshot, formatPosition, parsePosition } from "../tail/position.ts";
import type { TailItem } from "../tail/tail.ts";
import type { QueryDeps } from "./deps.ts";
import { SQL_ERRORS } from "./sql-errors.ts";

/** Rows of a table as they come. */

const from = z
  .string()
  .regex(/^(now|\d{1,15})$/, "is now or the number of a snapshot")
  .transform((text) => (text === "now" ? undefined : Number(text)));

const lastEventId = z
  .string()
  .refine((text) => parsePosition(text) !== undefined, "is the id of an event of a live tail")
  .transform(parsePosition);

export const tailRoute = defineRoute({
  role: "read",
  tag: "Query",
  method: "GET",
  path: "/v1/tail",
  summary: "Rows of a table as they are committed, as server-sent events",
  description:
    "Each row of later commits that the filter is true of comes once, as one event without a name: its data is the row, as " +
    "a query writes it in NDJSON, and its `id` is `<snapshot>.<n>`, the row's place in the order of the commits. A client " +
    "that lost the connection sends the last `id` in `Last-Event-ID`, as browsers do by themselves, to any node, and goes " +
    "on after it: nothing is lost and nothing comes twice. An `id` may come without an event, where the filter left rows " +
    "out. Rows that a merge moves do not come again, and rows that were deleted, or are past their retention, do not come. " +
    "The last event is `end` with `{code, message, reconnect}`: when `reconnect` is true the server stops, and the client " +
    "comes again; otherwise the token is not valid any more, the table was dropped, the filter fails on a row, or the " +
    "client was so slow that what it would read next can no longer be read (`snapshot_expired`).",
  query: z.object({
    table: z.string().describe("Table."),
    filter: z
      .string()
      .min(1)
      .max(LIMITS.tailFilterChars)
      .optional()
      .describe("An SQL condition over the columns, as it stands after WHERE; all rows without."),
    from: from
      .optional()
      .describe("`now`, as without it, or a snapshot: what was committed after that one comes, then what comes."),
  }),
  headers: z.object({
    "x-database": databaseHeader,
    "last-event-id": lastEventId.optional().describe("The last `id` that came; counts before `from`."),
  }),
  responses: [eventStreamResponse("Rows, until one side leaves.")],
  errors: SQL_ERRORS,
  handler:
    ({ tails, clock }: QueryDeps) =>
    async ({ caller, authenticateAgain, clientAddress, requestId, request, query, headers }) => {
      const since = query.from === undefined ? undefined : afterSnapshot(query.from);
      const { tail, position } = await tails.open({
        caller,
        authenticateAgain,
        address: clientAddress,
        requestId,
        signal: request.signal,
        database: headers["x-database"],
        table: query.table,
        filter: query.filter ?? "true",
        position: headers["last-event-id"] ?? since,
      });
      return eventStream({ events: mapEvents(tail, eventOf), clock, beginsAfter: formatPosition(position) });
    },
});

function eventOf(item: TailItem): ServerSentEvent {
  if (item.kind === "row") return { id: item.id, data: new JsonText(item.text) };
  if (item.kind === "position") return { position: item.id };
  const { code, message, reconnect } = item;
  return { event: "end", data: { code, message, reconnect } };
}
