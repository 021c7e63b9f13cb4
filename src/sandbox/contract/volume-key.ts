import { createHash } from "node:crypto";

/**
 * The name of a volume on a node, for volumes of earlier versions, whose record has none: made of its name and of the
 * tenant that made it.
 */
export function volumeKey(tenant: string, name: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, name]))
    .digest("hex")
    .slice(0, 32);
}
