import { publicText } from "../src/core/errors.ts";
import { contributed } from "../src/feature/collect.ts";
import type { SandboxDeps } from "../src/sandbox/control/routes/deps.ts";
import type { Answerers } from "./answerers.ts";
import type { Parts } from "./parts.ts";

/** What the installation can do is known where queries are. */
export async function capabilityAnswers(
  { features, config }: Parts,
  answers: Answerers["feature"],
  runtime: () => ReturnType<SandboxDeps["runtime"]> | undefined,
): Promise<Answerers["capabilities"]> {
  if (answers === undefined || "forward" in answers) return answers;
  const capabilities = await contributed(features, (feature) => feature.capabilities?.());
  const whyNoSandboxes = () => {
    const own = runtime();
    if (typeof own === "object") return publicText(own.why);
    return own === "off" ? "ENGINE_SANDBOX_RUNTIME is off here" : undefined;
  };
  return { here: { capabilities, context: { config, records: answers.here.records, whyNoSandboxes } } };
}
