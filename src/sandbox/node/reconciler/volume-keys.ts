import { volumeKey } from "../../contract/volume-key.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";

/**
 * The name on this node of a volume of the sandbox; undefined where the order has names of volumes, and none of this one:
 * no other is to be put in its place.
 */
export function volumeKeyIn(
  { tenant, volumeKeys }: Pick<SandboxOrder, "tenant" | "volumeKeys">,
  name: string,
): string | undefined {
  if (volumeKeys === undefined) return volumeKey(tenant, name);
  return Object.hasOwn(volumeKeys, name) ? volumeKeys[name] : undefined;
}
