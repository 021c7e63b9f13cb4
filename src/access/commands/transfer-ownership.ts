import { callApi, fieldCell, listIn, withApiFlags, type ApiFlags } from "../../client/api.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

type Flags = ApiFlags & { from: string; to: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("transfer-ownership")
    .description(
      "Hand all records of one owner to another one: of a token that got another name, of a user who left. Needs the role admin.",
    )
    .requiredOption("--from <owner>", "whose they are: a user, or `token:NAME`; `admins:` for what nobody owns")
    .requiredOption("--to <owner>", "whose they become");
  withExamples(withApiFlags(command), [
    "engine transfer-ownership --from token:1f0c2a9e --to token:ci",
    "engine transfer-ownership --from ann --to bob",
  ]).action(
    context.action(async (flags: Flags) => {
      const { from, to } = flags;
      const answer = await callApi(context, flags, "POST", "/v1/admin/ownership/transfer", { from, to });
      const moved = listIn(answer, "transferred").filter(({ count }) => count !== 0);
      if (flags.json) await context.writeJson(answer);
      else if (moved.length === 0) await context.writeLine(visible(`nothing belongs to ${from}`));
      else {
        const rows = moved.map(({ table, count }) => [table, count].map(fieldCell));
        await context.writeLine(renderTable(["RECORDS", "COUNT"], rows, context.style));
      }
      return EXIT.ok;
    }),
  );
};
