import { callTarget } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { readSavedClient, saveClient } from "../../client/saved-client.ts";
import { renewedToken, type SignedIn } from "../../client/session.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("logout")
    .description("End the session of `engine login`, and forget it and any saved token. The server stays saved.");
  withExamples(command, ["engine logout"]).action(context.action(() => logout(context)));
};

async function logout(context: CliContext): Promise<number> {
  const { config } = await context.loadConfig({});
  const { home } = config;
  const saved = await readSavedClient(home);
  if (saved?.token === undefined) throw new CliError("you are not signed in");
  const { url, token, session } = saved;
  const problem = session === undefined ? undefined : await endSession(context, home, { url, token, session });
  await saveClient(home, { url }, context.deps.random);
  if (problem !== undefined) {
    context.warn("the session is forgotten here, but the server could not be told: it goes on until it expires");
    throw problem;
  }
  await context.writeLine(`signed out of ${url}`);
  return EXIT.ok;
}

/** Resolves to why it was not ended; one that the server has ended already is. */
async function endSession(context: CliContext, home: string, saved: SignedIn): Promise<CliError | undefined> {
  const { url, token } = saved;
  const target = { url, token, freshToken: renewedToken(context, home, saved), origin: "engine login" };
  try {
    await callTarget(context, target, "POST", "/v1/auth/logout");
    return undefined;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return error.exitCode === EXIT.auth ? undefined : error;
  }
}
