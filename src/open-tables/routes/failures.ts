import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../core/errors.ts";
import { jsonResponse, type RouteFailures } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";

const icebergError = z.object({
  error: z.object({
    message: z.string(),
    type: z.string().describe("The exception that clients raise, as `NoSuchTableException`."),
    code: z.int().describe("The status of the answer."),
  }),
});

nameSchemas({ IcebergError: icebergError });

/** What Iceberg's clients know failures as; the others go by their status. */
const TYPES: Partial<Record<ErrorCode, string>> = {
  table_not_found: "NoSuchTableException",
  database_not_found: "NoSuchNamespaceException",
  unauthorized: "NotAuthorizedException",
  forbidden: "ForbiddenException",
  method_not_allowed: "UnsupportedOperationException",
  too_many_requests: "TooManyRequestsException",
  unavailable: "ServiceUnavailableException",
};

function typeOf(code: ErrorCode, status: number): string {
  if (TYPES[code] !== undefined) return TYPES[code];
  if (status === 404) return "NotFoundException";
  return status < 500 ? "BadRequestException" : "InternalServerError";
}

/** Errors as the protocol has them. */
export const ICEBERG_FAILURES: RouteFailures = {
  types: ["application/json"],
  schema: icebergError,
  statusOf: (code) => ERROR_CODES[code].status,
  respond: (_request, { code, message, status, details }) =>
    jsonResponse(status, { error: { message, type: typeOf(code, status), code: status } }, { ...details.headers }),
};
