import "../../../core/reports.ts";
import "../../../core/warnings.ts";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import { loadModel } from "../onnx/onnx-model.ts";
import { relevancesOf } from "./cross-encoder.ts";
import type { RerankReply, RerankRequest, RerankThreadData } from "./protocol.ts";

/** The thread of one session: the runtime blocks the thread that it computes on. */
const port = parentPort;
if (port === null) throw new Error("the thread of a reranking session was started as a program");
const { files, options } = workerData as RerankThreadData;
const model = await loadModel(files, options);

port.on("message", (request: RerankRequest) => {
  void replyTo(request).then((reply) => port.postMessage(reply));
});
port.postMessage({ kind: "ready" } satisfies RerankReply);

async function replyTo({ limitMs, ...question }: RerankRequest): Promise<RerankReply> {
  const startedMs = systemClock.monotonicMs();
  const checkTime = (): void => {
    if (systemClock.monotonicMs() - startedMs > limitMs) throw new Error(`no answer within ${limitMs} ms`);
  };
  try {
    return { kind: "rated", relevances: await relevancesOf(model, question, checkTime) };
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
}
