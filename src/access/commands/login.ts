import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { askPassword, askText } from "../../client/prompt.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { saveClient } from "../../client/saved-client.ts";
import { postForTokens, signedInBy } from "../../client/session.ts";
import { resolveTarget } from "../../client/target.ts";

type Options = { username?: string; passwordStdin?: true; server?: string; json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("login")
    .description(
      "Sign in with a password, and save the server and the session for the client commands (readable by you alone). " +
        "They renew its token by themselves.",
    )
    .option("--username <name>", "user; asked for on a terminal")
    .option("--password-stdin", "read the password from standard input")
    .option("--server <url>", "server to sign in to (ENGINE_SERVER_URL)")
    .option("--json", "print JSON");
  withExamples(command, [
    "engine login --server https://engine.example.com",
    "engine login --username ann --password-stdin < password.txt",
  ]).action(context.action((options: Options) => login(context, options)));
};

async function login(context: CliContext, options: Options): Promise<number> {
  const loaded = await context.loadConfig({ serverUrl: options.server });
  const { url, origin } = await resolveTarget(context, loaded);
  const username = options.username ?? (await askText(context, `User of ${url}: `, "name the user with --username"));
  const password = await askPassword(context, { fromStdin: options.passwordStdin === true, isNew: false });
  const result = await postForTokens(context, { url, origin }, "/v1/auth/login", { username, password });
  if (result.status === 401) throw new CliError(result.message, EXIT.auth);
  const file = await saveClient(
    loaded.config.home,
    { url, ...signedInBy(context, result.answer) },
    context.deps.random,
  );
  if (loaded.config.token !== undefined) context.warn("ENGINE_TOKEN is set and goes before the session");
  if (options.json) await context.writeJson({ url, username, file });
  else await context.writeLine(`signed in to ${url} as ${username}; the session is saved in ${file}`);
  return EXIT.ok;
}
