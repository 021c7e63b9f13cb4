import { Argument } from "commander";
import { renderCompletions, SHELLS, type Shell } from "../completion-scripts.ts";
import { withExamples } from "../../client/examples.ts";
import type { RegisterCommand } from "../../client/command.ts";

export const register: RegisterCommand = (program, context, wholeProgram) => {
  const command = program
    .command("completions")
    .description("Print a completion script for a shell.")
    .addArgument(new Argument("<shell>", "shell to complete for").choices(SHELLS));
  withExamples(command, [
    "source <(engine completions bash)",
    'engine completions zsh > "${fpath[1]}/_engine"',
    "engine completions fish > ~/.config/fish/completions/engine.fish",
  ]).action(
    context.action(async (shell: Shell) => {
      await context.write(renderCompletions(shell, await wholeProgram()));
      return 0;
    }),
  );
};
