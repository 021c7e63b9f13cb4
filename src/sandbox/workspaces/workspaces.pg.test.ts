import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { workspacesContract } from "./contract.ts";

onPostgres("workspaces", (open) => workspacesContract("postgres", open));
