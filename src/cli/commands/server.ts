import { withExamples } from "../../client/examples.ts";
import type { RegisterCommand } from "../../client/command.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("server")
    .description("Run the engine as a deployment: like serve, but listening on ENGINE_HTTP_ADDR (0.0.0.0:8080).")
    .option("--addr <host:port>", "address to listen on (ENGINE_HTTP_ADDR)")
    .option("--config <file>", "TOML file with options (ENGINE_CONFIG)");
  withExamples(command, ["engine server", "engine server --addr 0.0.0.0:80 --config /etc/engine.toml"]).action(
    context.action(async (options: { addr?: string; config?: string }) => {
      const loaded = await context.loadConfigQuietly({ httpAddr: options.addr, configFile: options.config });
      return context.deps.serve({ ...loaded, listen: loaded.config.httpAddr, isLocal: false });
    }),
  );
};
