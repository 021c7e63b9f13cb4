import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { dashboardsContract } from "./contract.test-kit.ts";

onPostgres("dashboards", (open) => dashboardsContract("postgres", open));
