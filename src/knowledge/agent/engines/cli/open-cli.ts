import type { EngineConfig, OpenedEngine } from "../engine.ts";
import { AcpModel } from "./acp-model.ts";
import type { TurnDeps } from "./acp-turn.ts";
import { problemOfAgent } from "./agent-fault.ts";

/** How the operator's program is started, and where it reaches its tools. */
export type CliDeps = Omit<TurnDeps, "mcpUrl"> & {
  /** Of this node, which alone knows the tokens of its runs; undefined where there are no tools. */
  mcpUrl: () => string | undefined;
};

/** The operator's program as an engine; it is started when it is asked. */
export function openCli({ model: modelName }: EngineConfig, { mcpUrl, ...deps }: CliDeps): OpenedEngine {
  const model = new AcpModel(modelName, { ...deps, mcpUrl: mcpUrl() });
  return {
    kind: "cli",
    modelName,
    model,
    maxOutputTokens: UNBOUNDED_TOKENS,
    temperature: undefined,
    providerOptions: {},
    problemOf: (error) => problemOfAgent(error, { secrets: Object.values(deps.passed), log: deps.log }),
    end: () => model.end(),
  };
}

/** The protocol has no such bound: bytes bound a program. Of this many an answer is never cut off. */
const UNBOUNDED_TOKENS = 200_000;
