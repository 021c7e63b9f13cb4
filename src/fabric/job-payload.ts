import { z } from "zod";
import { EngineError } from "../core/errors.ts";
import { JobFailure, type RunningJob } from "./handler.ts";

/** Time for the server that knows the field to come by. */
const NEWER_RETRY_MS = 15_000;

/**
 * The payload for its handler. A field that the schema does not know was written by a newer version and may say what must
 * not be done: the attempt fails, and a later one may meet a server of that version. Anything else that is wrong is final.
 */
export function readPayload<Schema extends z.ZodType>(
  schema: Schema,
  { payload }: Pick<RunningJob, "payload">,
): z.output<Schema> {
  const result = schema.safeParse(payload);
  if (result.success) return result.data;
  const unknown = unknownFields(result.error.issues);
  if (unknown === undefined) {
    throw new EngineError("bad_request_body", `the payload is wrong: ${z.prettifyError(result.error)}`);
  }
  const error = `this version of the program does not know ${unknown.join(", ")} of the payload: a newer one runs the job`;
  throw new JobFailure({ error, retryable: true, retryAfterMs: NEWER_RETRY_MS });
}

/** Undefined when something else is wrong as well. */
function unknownFields(issues: readonly z.core.$ZodIssue[]): string[] | undefined {
  const fields: string[] = [];
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") return undefined;
    fields.push(...issue.keys.map((key) => [...issue.path, key].join(".")));
  }
  return fields;
}
