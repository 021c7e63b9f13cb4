import { wirePart } from "../../contract/images/image-part.ts";
import type { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { Hold } from "../../../fabric/job.ts";
import { RemoteHttp, type RemoteServer } from "../../../fabric/remote-port-http.ts";
import type { ImageLayer } from "../../contract/images/image.ts";
import type { ImagePort } from "../../contract/images/image-port.ts";

const FENCE_HEADER = "X-Job-Fence";
/** Parts are a few MiB, on whatever line. */
const TIMEOUT_MS = 120_000;

/** Layers as a node daemon reaches them: over HTTP, with the token of its worker. */
export class RemoteImagePort implements ImagePort {
  readonly #http: RemoteHttp;

  constructor(server: RemoteServer) {
    this.#http = new RemoteHttp(server);
  }

  async read({ buildId, fence }: Pick<ImageLayer, "buildId" | "fence">, part: number): Promise<Uint8Array> {
    const path = `/v1/sandbox-nodes/layers/${encodeURIComponent(buildId)}/${fence}/${part}`;
    const answer = await this.#http.call({ method: "GET", path, timeoutMs: TIMEOUT_MS, mayBeForbidden: true });
    const { data } = wirePart.safeParse(answer);
    if (data === undefined) throw new EngineError("unavailable", "the control plane's answer is no part of an image");
    return Buffer.from(data.bytes, "base64");
  }

  async write({ jobId, fence }: Hold, part: number, bytes: Uint8Array): Promise<void> {
    await this.#http.call({
      method: "POST",
      path: `/v1/sandbox-nodes/jobs/${encodeURIComponent(jobId)}/layer/${part}`,
      headers: { [FENCE_HEADER]: String(fence) },
      body: { bytes: Buffer.from(bytes).toString("base64") } satisfies z.input<typeof wirePart>,
      timeoutMs: TIMEOUT_MS,
      mayBeForbidden: true,
    });
  }

  /** Calls under way reject. */
  async close(): Promise<void> {
    await this.#http.close();
  }
}
