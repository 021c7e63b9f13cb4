import { callApi, fieldText, listIn, withApiFlags, type ApiFlags } from "../../../src/client/api.ts";
import type { RegisterCommand } from "../../../src/client/command.ts";
import { withExamples } from "../../../src/client/examples.ts";

export const register: RegisterCommand = (program, context) => {
  const command = withApiFlags(program.command("toys").description("List the toys."));
  withExamples(command, ["engine toys", "engine toys --json"]).action(
    context.action(async (flags: ApiFlags) => {
      const toys = listIn(await callApi(context, flags, "GET", "/v1/toys"), "toys");
      if (flags.json) await context.writeJson(toys);
      else
        for (const { name, colour } of toys)
          await context.writeLine(`${fieldText(name)} ${colour === null ? "unpainted" : fieldText(colour)}`);
      return 0;
    }),
  );
};
