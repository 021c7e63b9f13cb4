import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { sandboxesContract } from "./contract.test-kit.ts";
import { ownersContract } from "./contract-owners.test-kit.ts";
import { sandboxReportsContract } from "./contract-reports.test-kit.ts";
import { volumesContract } from "./contract-volumes.test-kit.ts";

onPostgres("sandboxes", (open) => {
  sandboxesContract("postgres", open);
  ownersContract("postgres", open);
  sandboxReportsContract("postgres", open);
  volumesContract("postgres", open);
});
