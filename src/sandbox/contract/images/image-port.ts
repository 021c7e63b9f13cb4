import type { Hold } from "../../../fabric/job.ts";
import type { ImageLayer } from "./image.ts";

/**
 * What a node needs of the control plane for images: the parts of layers. In a process with the catalog that is the
 * object store, in a node daemon routes for workers.
 */
export interface ImagePort {
  /** Rejects with `image_not_found` when the part is not there. */
  read(layer: Pick<ImageLayer, "buildId" | "fence">, part: number): Promise<Uint8Array>;
  /** A part of what the held job builds. Rejects with `lease_lost`. */
  write(hold: Hold, part: number, bytes: Uint8Array): Promise<void>;
}
