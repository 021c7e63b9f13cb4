import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { NodeCall, NodeCallHandler, NodeMethod, NodeReply } from "../../contract/link/calls.ts";
import type { SandboxFiles } from "./files.ts";

const path = z.string();
const params = {
  list: z.strictObject({ path, after: z.string().optional() }),
  stat: z.strictObject({ path }),
  get: z.strictObject({ path, start: z.int().optional(), end: z.int().min(0).optional() }),
  put: z.strictObject({
    path,
    mode: z.int().min(0).max(0o777).optional(),
    if_match: z.string().optional(),
    if_none_match: z.literal("*").optional(),
    size: z.int().min(0).optional(),
  }),
  delete: z.strictObject({ path, recursive: z.boolean(), if_match: z.string().optional() }),
};

type Answer = (files: SandboxFiles, call: NodeCall) => Promise<NodeReply>;

const ANSWERS: Partial<Record<NodeMethod, Answer>> = {
  "files.list": async (files, call) => ({ result: await files.list(paramsOf(call, params.list), call.signal) }),
  "files.stat": async (files, call) => ({ result: await files.stat(paramsOf(call, params.stat).path, call.signal) }),
  "files.get": async (files, call) => {
    const { body, ...result } = await files.get(paramsOf(call, params.get), call.signal);
    return { result, body };
  },
  "files.put": async (files, call) => {
    if (call.body === undefined) throw new EngineError("bad_request", "a file is put without its bytes");
    return { result: await files.put(paramsOf(call, params.put), call.body, call.signal) };
  },
  "files.delete": async (files, call) => {
    await files.delete(paramsOf(call, params.delete), call.signal);
    return { result: {} };
  },
};

/** Answers the calls `files.*` for one sandbox. Rejects with `EngineError`s; `bad_request` for what it does not know. */
export function filesCallHandler(files: SandboxFiles): NodeCallHandler {
  return async (call) => {
    const answer = ANSWERS[call.method];
    if (answer === undefined) throw new EngineError("bad_request", `${call.method} is no call about files`);
    return await answer(files, call);
  };
}

function paramsOf<T>({ method, params: given }: NodeCall, schema: z.ZodType<T>): T {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new EngineError("bad_request", `the params of ${method} are not understood: ${result.error.message}`);
}
