import { baseUrl } from "../../config/kinds.ts";
import { messageOf } from "../../core/errors.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { readHealth } from "../../client/health.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { saveClient } from "../../client/saved-client.ts";

type Options = { token?: string; json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("connect")
    .description("Save the server, and the token for it, that the client commands talk to.")
    .argument("<url>", "base address of the server")
    .option("--token <token>", "bearer token to save with it (readable by you alone)")
    .option("--json", "print JSON");
  withExamples(command, [
    "engine connect http://127.0.0.1:7777",
    'engine connect https://engine.example.com --token "$TOKEN"',
  ]).action(context.action((url: string, options: Options) => connect(context, url, options)));
};

async function connect(context: CliContext, url: string, options: Options): Promise<number> {
  const address = baseUrl.parse(url.trim(), { baseDir: "/", userHome: "/" });
  if (address === undefined) throw new CliError(`the address is not accepted; expected ${baseUrl.accepts}`, EXIT.usage);
  const { config } = await context.loadConfig({ token: options.token });
  // A token from the environment stays in the environment.
  const hasToken = options.token !== undefined && config.token !== undefined;
  const saved = hasToken ? { url: address, token: config.token } : { url: address };
  const target: Target = { ...saved, origin: "engine connect" };
  const file = await saveClient(config.home, saved, context.deps.random);
  const answers = await isAnswering(context, target);
  if (options.json) {
    await context.writeJson({ url: saved.url, token_set: hasToken, file, answers });
    return EXIT.ok;
  }
  await context.writeLine(`${saved.url} is saved in ${file}${hasToken ? ", with its token" : ""}`);
  return EXIT.ok;
}

/** Saving an address before its server runs is fine, but worth a word. */
async function isAnswering(context: CliContext, target: Target): Promise<boolean> {
  try {
    await readHealth(context, target);
    return true;
  } catch (error) {
    context.warn(messageOf(error));
    return false;
  }
}
