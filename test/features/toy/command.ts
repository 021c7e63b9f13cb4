import type { RegisterFeatureCommand, ServerFlags } from "../../../src/feature/command.ts";

export const register: RegisterFeatureCommand = (program, tools) => {
  const command = tools.withServerFlags(program.command("toys").description("List the toys."));
  tools.withExamples(command, ["engine toys", "engine toys --json"]).action(
    tools.action(async (flags: ServerFlags) => {
      const { toys } = await tools.call(flags, { method: "GET", path: "/v1/toys" });
      if (flags.json) await tools.writeJson(toys);
      else for (const { name, colour } of toys as Toy[]) await tools.writeLine(`${name} ${colour ?? "unpainted"}`);
      return 0;
    }),
  );
};

type Toy = { name: string; colour: string | null };
