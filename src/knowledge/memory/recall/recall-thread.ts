import "../../../core/reports.ts";
import "../../../core/warnings.ts";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../../core/clock.ts";
import { EngineError, messageOf, toErrorRecord } from "../../../core/errors.ts";
import { systemRandom } from "../../../core/random.ts";
import { Reranker } from "../rerank/reranker.ts";
import { Indexes } from "./indexes.ts";
import type { RecallCall, RecalledJson, RecallReply, RecallRequest, RecallThreadData } from "./recall-protocol.ts";
import { openRecordSource } from "./record-source.ts";

/** The thread that keeps the indexes of memories and answers from them: one in a process. */
const port = parentPort;
if (port === null) throw new Error("the thread of recall was started as a program");
const { source, options, model, rerankModel } = workerData as RecallThreadData;
const records = await openRecordSource(source, { clock: systemClock, random: systemRandom });
const reranker = rerankModel && new Reranker({ model: rerankModel, clock: systemClock, random: systemRandom });
reranker?.start();
const indexes = new Indexes({ records, clock: systemClock, options, model, reranker });

port.on("message", (request: RecallRequest) => {
  void replyTo(request).then((reply) => port.postMessage(reply));
});

async function replyTo({ id, call }: RecallRequest): Promise<RecallReply> {
  const outcome = await outcomeOf(call);
  return { id, indexBytes: indexes.sizeBytes, rerankState: reranker?.state, ...outcome };
}

async function outcomeOf(call: RecallCall) {
  try {
    return { kind: "answer", value: await answerTo(call) } as const;
  } catch (error) {
    if (error instanceof EngineError) return { kind: "refused", error: toErrorRecord(error) } as const;
    const stack = error instanceof Error ? error.stack : undefined;
    return { kind: "failed", message: messageOf(error), stack } as const;
  }
}

async function answerTo(call: RecallCall): Promise<unknown> {
  switch (call.kind) {
    case "recall": {
      const { answer, reranking } = await indexes.recall(call.databaseId, call.asking);
      return { json: JSON.stringify(answer), reranking } satisfies RecalledJson;
    }
    case "prepare":
      return await indexes.prepare(call.databaseIds);
    case "dropGone":
      return await indexes.dropGone();
    case "state":
      return indexes.stateOf(call.databaseId);
  }
}
