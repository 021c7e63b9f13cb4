import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { eventQuotaContract } from "./contract.test-kit.ts";

onPostgres("quotas of events", (open) => eventQuotaContract("postgres", open));
