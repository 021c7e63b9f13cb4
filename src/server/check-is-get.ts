import { EngineError } from "../core/errors.ts";
import type { HttpRequest } from "../io/http/http.ts";

/** Throws `method_not_allowed` for a HEAD: whoever only looks must begin nothing and use nothing up. */
export function checkIsGet({ method }: HttpRequest, allowed: string): void {
  if (method === "GET") return;
  throw new EngineError("method_not_allowed", `this request has side effects: use ${allowed.replace(", ", " or ")}`, {
    headers: { Allow: allowed },
  });
}
