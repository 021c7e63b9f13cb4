import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { readHealth } from "../../client/health.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { resolveTarget } from "../../client/target.ts";

type Options = { server?: string; json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("status")
    .description("Show the server, whether a token is set for it, and how it is.")
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--json", "print JSON");
  withExamples(command, ["engine status", "engine status --json"]).action(
    context.action((options: Options) => status(context, options)),
  );
};

async function status(context: CliContext, options: Options): Promise<number> {
  const target = await resolveTarget(context, await context.loadConfig({ serverUrl: options.server }));
  const known = { url: target.url, origin: target.origin, token_set: target.token !== undefined };
  if (!options.json) {
    await context.writeLine(`server   ${known.url} (${known.origin})`);
    await context.writeLine(`token    ${known.token_set ? "set" : "not set"}`);
  }
  try {
    const health = await readHealth(context, target);
    if (options.json) await context.writeJson({ ...known, health });
    else {
      await context.writeLine(`health   ${health.status}, version ${health.version}`);
      const { query_confinement: confinement } = health;
      if (confinement !== undefined) await context.writeLine(`query confinement: ${confinement}`);
    }
    return health.status === "draining" ? EXIT.failed : EXIT.ok;
  } catch (error) {
    if (options.json) await context.writeJson({ ...known, health: null });
    throw error;
  }
}
