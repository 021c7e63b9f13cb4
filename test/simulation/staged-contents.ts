import { zstdDecompressSync } from "node:zlib";
import { DamagedObject } from "../../src/ingest/staged/container.ts";
import { decodeStaged } from "../../src/ingest/staged/object.ts";
import { decodeRows } from "./rows.ts";

/** Requests that a staged object at `<node>/<id>` holds; none when it is damaged. */
export function requestsOf(place: string, bytes: Uint8Array<ArrayBuffer>): string[] {
  const [node = "", id = ""] = place.split("/");
  try {
    const { requests, extents } = decodeStaged(bytes, { node, id });
    const sealed = extents.flatMap((extent) => decodeRows(Uint8Array.from(extent.bytes)).map((row) => row.request));
    const raw = requests.flatMap(({ place }) => {
      if (place.kind === "rows") return [];
      const text = Buffer.from(zstdDecompressSync(place.body.compressed)).toString();
      return [...text.matchAll(/"label":"([^"#]+)#/g)].map(([, request]) => request ?? "");
    });
    return [...new Set([...sealed, ...raw])];
  } catch (error) {
    if (error instanceof DamagedObject) return [];
    throw error;
  }
}
