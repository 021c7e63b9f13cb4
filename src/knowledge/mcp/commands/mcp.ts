import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { EXIT } from "../../../client/failure.ts";
import { onStopSignal } from "../../../core/stop-signal.ts";
import { HomeEngine } from "../stdio/home-engine.ts";
import { StdioRelay } from "../stdio/relay.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("mcp")
    .description(
      "Serve MCP over stdio, for a coding agent on this machine (`engine setup`). The first process opens the engine of " +
        "ENGINE_HOME; others, also beside `engine serve`, pass on to it what they are asked.",
    );
  withExamples(command, ["engine mcp", "ENGINE_HOME=~/work/.engine engine mcp"]).action(
    context.action(() => serve(context)),
  );
};

async function serve(context: CliContext): Promise<number> {
  const { clock, stdin } = context.deps;
  const engine = new HomeEngine(context, await context.loadConfigQuietly({}), {
    database: "default",
    isForAgent: true,
  });
  const relay = new StdioRelay({
    input: stdin as AsyncIterable<Uint8Array>,
    write: (text) => context.write(text),
    engine,
    clock,
  });
  const stop = new AbortController();
  const off = onStopSignal(() => {
    stop.abort();
    stdin.destroy();
  });
  try {
    // Where the engine cannot start, the client sees the process end.
    await Promise.race([relay.run(stop.signal), engine.open().then(() => new Promise<never>(() => {}))]);
  } finally {
    off();
    await engine.close();
  }
  return EXIT.ok;
}
