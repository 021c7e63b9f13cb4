import { z } from "zod";
import { defineRoute, type RouteResponse } from "../../server/route.ts";
import { guardedService } from "../../server/grpc/guarded-service.ts";
import { answerOverWeb, GRPC_WEB_TYPES } from "../../server/grpc/web.ts";
import type { QueryDeps } from "../routes/deps.ts";
import { flightOperations, MAX_TICKET_BYTES } from "./flight.ts";

function answer(type: string): RouteResponse {
  const headers = { "X-Engine-Rows": "Total rows returned." };
  return { status: 200, description: "Messages, and the trailers with the status of the call.", type, headers };
}

/** Arrow Flight for browsers. */
export const flightWebRoute = defineRoute({
  method: "POST",
  path: "/flight/{*method}",
  role: "read",
  tag: "Query",
  summary: "Arrow Flight over gRPC-web",
  description:
    "The calls of Arrow Flight as gRPC-web, below `/flight/`: `arrow.flight.protocol.FlightService/DoGet` with a ticket " +
    '`{"database": "default", "query": "…", "language": "sql"}`. The status of the call is in the trailers, at the end of ' +
    "the body. Budgets are asked for by the headers of `/v1/query`. Every other call of Flight is answered `UNIMPLEMENTED`.",
  params: z.object({ method: z.string().describe("The service and the method, with a slash between them.") }),
  body: {
    types: GRPC_WEB_TYPES,
    description: "One message, in a frame of gRPC-web.",
    limitBytes: MAX_TICKET_BYTES,
  },
  responses: GRPC_WEB_TYPES.map(answer),
  errors: ["unsupported_media_type", "not_acceptable", "unavailable"],
  handler: (deps: QueryDeps) => {
    const operations = flightOperations({ query: deps.query, tablesOnly: false });
    return async (call) => {
      const callerOf = () => Promise.resolve(call.caller);
      const service = guardedService(operations, { ...deps, callerOf, isDraining: () => false });
      const options = { method: call.params.method, maxReceiveBytes: MAX_TICKET_BYTES, clock: deps.clock };
      return await answerOverWeb(service, call, options);
    };
  },
});

export const FLIGHT_ROUTES = [flightWebRoute];
