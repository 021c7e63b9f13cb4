import { z } from "zod";
import type { GrpcCall, GrpcReply } from "../../io/grpc/grpc.ts";
import { EngineError } from "../../core/errors.ts";
import type { GrpcContext, GrpcOperations } from "../../server/grpc/guarded-service.ts";
import { askedBudget, budgetHeaders } from "../budgets/budget-headers.ts";
import type { AskedBudget } from "../budgets/budget.ts";
import type { QueryService } from "../contract/query.ts";
import { RENDER_HEADER, renderHeader } from "../stream/render.ts";
import { FlightDataMessages } from "./flight-data.ts";
import { readTicket } from "./ticket.ts";

/**
 * Arrow Flight: queries whose answers are Arrow record batches over gRPC (https://arrow.apache.org/docs/format/Flight.html).
 * Of its calls there is `DoGet`; all others are `UNIMPLEMENTED`. The ticket is JSON (`ticket.ts`), the answer of the query
 * is the Arrow IPC stream that HTTP clients get, cut into the messages of the protocol (`flight-data.ts`). It is read from
 * its file at the client's pace, when the query's process has long taken the next query.
 *
 * It is served on a port of its own (`ENGINE_GRPC_ADDR`), and for browsers as gRPC-web on the HTTP port (`routes.ts`).
 * On its own port nobody is asked for a token unless `ENGINE_GRPC_AUTH` says so. Whoever is not asked may read tables and
 * their names, and nothing that belongs to somebody: no table of the schema `system`.
 */
export type FlightDeps = {
  query: Pick<QueryService, "run">;
  /** Whether callers see tables only. */
  tablesOnly: boolean;
};

export const FLIGHT_SERVICE = "arrow.flight.protocol.FlightService";

/** Most bytes of a ticket. Where nobody is asked for a token, anybody may send one with each call. */
export const MAX_TICKET_BYTES = 1024 * 1024;

export function flightOperations(deps: FlightDeps): GrpcOperations {
  const doGet = (context: GrpcContext, message: Uint8Array): Promise<GrpcReply> => runTicket(deps, context, message);
  return { name: FLIGHT_SERVICE, operations: { DoGet: { streams: true, handle: doGet } } };
}

async function runTicket(
  { query, tablesOnly }: FlightDeps,
  { call, caller, requestId }: GrpcContext,
  message: Uint8Array,
): Promise<GrpcReply> {
  const { database, query: text, language } = readTicket(message);
  const { rows, body, render } = await query.run({
    caller,
    address: call.remoteAddress,
    database,
    text,
    language,
    format: "arrow",
    budget: budgetOf(call),
    requestId,
    tablesOnly,
    signal: call.signal,
  });
  const drawn = render === undefined ? {} : { [RENDER_HEADER.toLowerCase()]: renderHeader(render) };
  return { metadata: { "x-engine-rows": String(rows), ...drawn }, messages: new FlightDataMessages(body) };
}

const BUDGET_METADATA = z.object(budgetHeaders);

/** Under the names that the headers of HTTP have. */
function budgetOf(call: GrpcCall): AskedBudget {
  const values = Object.keys(budgetHeaders).map((name) => [name, call.header(name)] as const);
  const result = BUDGET_METADATA.safeParse(Object.fromEntries(values));
  if (result.success) return askedBudget(result.data);
  const [issue] = result.error.issues;
  throw new EngineError("invalid_header", `metadata ${String(issue?.path[0])}: ${issue?.message}`);
}
