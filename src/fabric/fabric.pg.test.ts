import { onPostgres } from "../catalog/postgres/contract-server.test-kit.ts";
import { fabricContract } from "./contract.test-kit.ts";
import { jobLogsContract } from "./contract-logs.test-kit.ts";
import { jobOwnersContract } from "./contract-owners.test-kit.ts";
import { schedulesContract } from "./contract-schedules.test-kit.ts";
import { workersContract } from "./contract-workers.test-kit.ts";

onPostgres("the job fabric", (open) => {
  fabricContract("postgres", open);
  jobLogsContract("postgres", open);
  schedulesContract("postgres", open);
  workersContract("postgres", open);
  jobOwnersContract("postgres", open);
});
