import { createHash } from "node:crypto";

/** The name of a tenant's volume on a node: any text, as a file name. */
export function volumeKey(tenant: string, name: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, name]))
    .digest("hex")
    .slice(0, 32);
}
