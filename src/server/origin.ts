import type { Origin } from "../auth/audit.ts";
import type { Caller } from "../auth/caller.ts";
import { jsonResponse, type Call } from "./route.ts";

/** Who asked and from where, for the audit log. */
export function originOf({ caller, clientAddress, requestId }: Call): Origin & { caller: Caller } {
  return { caller, address: clientAddress, requestId };
}

/** An answer that holds a secret, which nothing on the way may keep. */
export function secret(status: number, body: unknown) {
  return jsonResponse(status, body, { "Cache-Control": "no-store" });
}
