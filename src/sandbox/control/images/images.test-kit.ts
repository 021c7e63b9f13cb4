import type { AuditLog } from "../../../auth/audit.ts";
import type { RecordStore } from "../../../db/records.ts";
import { systemClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { systemRandom } from "../../../core/random.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import { ObjectNotFound, type ObjectInfo } from "../../../io/objectstore/objectstore.ts";
import { LayerStore, type LayerStoreOptions } from "./layer-store.ts";
import { MachineImages, type MachineImagesOptions } from "./machine-images.ts";

/** Objects in memory, as far as layers need them. */
class MemoryObjects {
  readonly objects = new Map<string, Uint8Array<ArrayBuffer>>();

  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.objects.set(key, Uint8Array.from(bytes));
  }

  async get(key: string): Promise<Uint8Array<ArrayBuffer>> {
    const found = this.objects.get(key);
    if (found === undefined) throw new ObjectNotFound(key);
    return found;
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo> {
    for (const [key, { byteLength }] of this.objects) {
      if (key.startsWith(prefix)) yield { key, sizeBytes: byteLength, modifiedAtMs: 0, identity: "" };
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.objects.delete(key);
  }
}

/** Images over a catalog, with layers in memory. */
export function imagesOn(
  { records, audit, fabric }: { records: RecordStore; audit: AuditLog; fabric: Pick<Fabric, "prepare"> },
  limits: Partial<MachineImagesOptions["limits"]> = {},
): { images: MachineImages; layers: LayerStore; objects: ReadonlyMap<string, Uint8Array> } {
  const store = new MemoryObjects();
  const layers = new LayerStore({ records, store, prefix: "engine" } satisfies LayerStoreOptions);
  const images = new MachineImages({
    records,
    audit,
    fabric,
    layers,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    limits: { maxPerTenant: 100, pendingTimeoutMs: 60_000, purgedAfterMs: 60_000, ...limits },
    defaults: { region: "local", instanceType: "standard" },
  });
  return { images, layers, objects: store.objects };
}
