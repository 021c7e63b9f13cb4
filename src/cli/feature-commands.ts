import type { CommandTools, RegisterFeatureCommand } from "../feature/command.ts";
import { callApi, withApiFlags } from "./api.ts";
import type { RegisterCommand } from "./command.ts";
import type { CliContext } from "./context.ts";
import { withExamples } from "./examples.ts";

/** A command of a feature as one of the program. */
export function asCommand({ register }: { register: RegisterFeatureCommand }): { register: RegisterCommand } {
  return { register: (program, context) => register(program, toolsOf(context)) };
}

function toolsOf(context: CliContext): CommandTools {
  return {
    writeLine: (text) => context.writeLine(text),
    writeJson: (value) => context.writeJson(value),
    warn: (text) => context.warn(text),
    action: (run) => context.action(run),
    withExamples,
    withServerFlags: withApiFlags,
    call: (flags, { method, path, body }) => callApi(context, flags, method, path, body),
  };
}
