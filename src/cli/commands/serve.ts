import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { askPassword } from "../../client/prompt.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("serve")
    .description("Run the engine for this machine: SQLite and the local disk, listening on 127.0.0.1:7777.")
    .option("--addr <host:port>", "address to listen on (ENGINE_LOCAL_HTTP_ADDR)")
    .option("--config <file>", "TOML file with options (ENGINE_CONFIG)");
  withExamples(command, [
    "engine serve",
    "engine serve --addr 127.0.0.1:9000",
    "engine serve --config engine.toml",
  ]).action(
    context.action(async (options: { addr?: string; config?: string }) => {
      const loaded = await context.loadConfigQuietly({ localHttpAddr: options.addr, configFile: options.config });
      return context.deps.serve({ ...loaded, listen: loaded.config.localHttpAddr, isLocal: true, ...asker(context) });
    }),
  );
};

/** Where somebody sits at a terminal, a password that is missing is asked for. */
function asker(context: CliContext): { askPassword?: (why: string) => Promise<string> } {
  const { stdin, stderr } = context.deps;
  if (stdin.isTTY !== true) return {};
  return {
    askPassword: (why) => {
      stderr.write(`${why}\n`);
      return askPassword(context, { fromStdin: false, isNew: true });
    },
  };
}
