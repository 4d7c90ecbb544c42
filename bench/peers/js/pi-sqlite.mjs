// Pi's SQLite backend, driven as its README and Pi's own benchmark drive it: one
// file a session, the branch "main", with its defaults (WAL, synchronous FULL).
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  BACKGROUND_CONTEXT as background, branchTip, insertEntry, laneConfig, laneState, setValue,
} from "@earendil-works/pi-agent-core";
import { createNodeSqliteFactory, SqliteSessionRepo } from "@earendil-works/pi-session-backend-sqlite-node";
import { Conversion } from "./convert.mjs";
import { each, NotRun, Recent, serve, timed } from "./serve.mjs";

// What Pi's harness builds contexts with; the package does not export it.
const { buildSessionContext } = await import(
  new URL("./harness/session/context.js", import.meta.resolve("@earendil-works/pi-agent-core"))
);

const main = branchTip("main");

// databases are opened with synchronous NORMAL where that is asked for.
function databases(normal) {
  const factory = createNodeSqliteFactory();
  if (!normal) return factory;
  const relaxed = (open) => async (path) => {
    const db = await open(path);
    db.exec("PRAGMA synchronous = NORMAL");
    return db;
  };
  return { ...factory, open: relaxed(factory.open), openExisting: relaxed(factory.openExisting) };
}

class Store {
  #dir;
  #repo;
  #recent = new Recent();
  #conversions = new Map(); // of sessions that are being built
  #aliases; // of entries that Pi does not keep as such: the one in their place

  constructor(dir, normal, aliases) {
    this.#dir = dir;
    this.#repo = new SqliteSessionRepo({ directory: dir, databaseFactory: databases(normal) });
    this.#aliases = aliases;
  }

  static async open({ dir, normal }) {
    const kept = await readFile(join(dir, "aliases.json"), "utf8").catch(() => "[]");
    return new Store(dir, normal, new Map(JSON.parse(kept)));
  }

  #path(id) { return join(this.#dir, `${id}.sqlite`); }

  #session(id) {
    return this.#recent.get(id, async () => {
      const session = await this.#repo.open({ id, path: this.#path(id) }, background);
      return this.#opened(session, await session.branch("main", background));
    });
  }

  #opened(session, branch) { return { session, branch, close: () => session.close(background) }; }

  async #existing(id) {
    await this.#built(id);
    return this.#session(id);
  }

  // built forgets what only building needs, so that it costs later calls nothing.
  async #built(id) {
    const conversion = this.#conversions.get(id);
    if (conversion === undefined) return;
    this.#conversions.delete(id);
    for (const alias of conversion.aliases) this.#aliases.set(...alias);
    if (conversion.aliases.size > 0) await writeFile(join(this.#dir, "aliases.json"), JSON.stringify([...this.#aliases]));
  }

  #entry(id) { return this.#aliases.has(id) ? this.#aliases.get(id) : id; }

  async create({ session: id }) {
    const { value: session, reply } = await timed(() => this.#repo.create({ id }, background));
    const branch = await session.createBranch("main", null, background);
    // A fork of one branch wants these, as Pi's benchmark sets them.
    await session.mutate((mutator) => mutator.commit([
      setValue(laneConfig("main"), { model: { provider: "acme", modelId: "coder-1" }, thinkingLevel: "off", activeToolNames: [] }),
      setValue(laneState("main"), { currentOperationId: null, lastOperationId: null, inbox: [] }),
    ], background), background);
    await this.#recent.put(id, this.#opened(session, branch));
    return { ...reply, count: 1 };
  }

  async leave({ session: id }) {
    await this.#built(id);
    await this.#recent.close(id);
    return {};
  }

  async build({ session: id, lines }) {
    const { session } = await this.#session(id);
    let conversion = this.#conversions.get(id);
    if (conversion === undefined) this.#conversions.set(id, (conversion = new Conversion()));
    const writes = lines.flatMap((line) => conversion.writes(JSON.parse(line)));
    writes.push(setValue(main, conversion.leaf));
    const { reply } = await timed(() => session.mutate((mutator) => mutator.commit(writes, background), background));
    return { ...reply, count: lines.length, leaf: conversion.leaf ?? "" };
  }

  async append({ session: id, lines, writers }) {
    const { branch } = await this.#existing(id);
    const messages = lines.map((line) => JSON.parse(line));
    const reply = await each(messages, writers, (message) => branch.appendMessage(message, background));
    return { ...reply, leaf: await branch.getTipId(background) };
  }

  async batch({ session: id, lines }) {
    const { session, branch } = await this.#existing(id);
    const messages = lines.map((line) => JSON.parse(line));
    const { value: leaf, reply } = await timed(() => session.mutate(async (mutator) => {
      let parentId = (await mutator.getValue(main, background)).value;
      const writes = messages.map((message) => {
        const write = insertEntry({ id: session.idGenerator.next(), parentId, type: "message", message });
        parentId = write.entry.id;
        return write;
      });
      await mutator.commit([...writes, setValue(main, parentId)], background);
      return parentId;
    }, background));
    return { ...reply, count: lines.length, leaf };
  }

  async appendAt({ session: id, entry, lines }) {
    const { session } = await this.#existing(id);
    const parentId = this.#entry(entry);
    const message = JSON.parse(lines[0]);
    const { value: leaf, reply } = await timed(async () => {
      const write = insertEntry({ id: session.idGenerator.next(), parentId, type: "message", message });
      await session.mutate((mutator) => mutator.commit([write, setValue(main, write.entry.id)], background), background);
      return write.entry.id;
    });
    return { ...reply, count: 1, leaf };
  }

  async move({ session: id, entry }) {
    const { session } = await this.#existing(id);
    const target = entry ? this.#entry(entry) : null;
    const { reply } = await timed(() => session.setValue(main, target, background));
    return { ...reply, count: 1, leaf: entry ?? "" };
  }

  async branch({ session: id, entry }) {
    const { session, branch } = await this.#existing(id);
    const { value: entries, reply } = await timed(() => this.#branch({ session, branch }, entry));
    return { ...reply, count: entries.length };
  }

  // As the harness reads a branch, and ours: back to the last compaction.
  async #branch({ session, branch }, entry) {
    const start = entry ? this.#entry(entry) : await branch.getTipId(background);
    if (start === null) return [];
    const entries = await session.scanBranch({ start, stopAtType: "compaction", order: "newestFirst" }, background);
    return entries.reverse();
  }

  async #context(session, entry) {
    return buildSessionContext(await this.#branch(session, entry), undefined, background);
  }

  async context({ session: id, entry }) {
    const session = await this.#existing(id);
    const { value: messages, reply } = await timed(() => this.#context(session, entry));
    return { ...reply, count: messages.length };
  }

  async turn({ session: id, lines }) {
    const session = await this.#existing(id);
    const messages = lines.map((line) => JSON.parse(line));
    const { reply: appended } = await timed(async () => {
      for (const message of messages) await session.branch.appendMessage(message, background);
    });
    const { value: context, reply: built } = await timed(() => this.#context(session));
    const leaf = await session.branch.getTipId(background);
    return { nanos: appended.nanos + built.nanos, each: [appended.nanos, built.nanos], count: context.length, leaf };
  }

  async fork({ session: id, newSession, entry }) {
    const { session } = await this.#existing(id);
    const options = entry
      ? { scope: "branch", branch: "main", entryId: this.#entry(entry), position: "at", id: newSession }
      : { scope: "tree", id: newSession };
    const { value: forked, reply } = await timed(() => this.#repo.fork(session.metadata, options, background));
    await this.#recent.put(newSession, this.#opened(forked, await forked.branch("main", background)));
    return { ...reply, count: this.#read(newSession, "SELECT count(*) AS n FROM entries").n };
  }

  async list({ limit }) {
    if (limit) throw new NotRun("it has no pages of sessions");
    const { value: sessions, reply } = await timed(() => this.#repo.list(undefined, background));
    return { ...reply, count: sessions.length };
  }

  async stream({ session: id }) {
    const { session } = await this.#existing(id);
    const { value: count, reply } = await timed(async () => {
      let n = 0;
      for (let cursor; ; ) {
        const page = await session.findEntries({ order: "asc", limit: 1000, cursor }, background);
        if (page.length === 0) return n;
        n += page.length;
        cursor = { seq: page.at(-1).seq };
      }
    });
    return { ...reply, count };
  }

  async size() {
    let bytes = 0;
    for (const name of await readdir(this.#dir)) {
      if (!name.endsWith(".sqlite")) continue;
      const id = name.slice(0, -".sqlite".length);
      bytes += this.#read(id, "PRAGMA page_count").page_count * this.#read(id, "PRAGMA page_size").page_size;
    }
    return { bytes };
  }

  #read(id, sql) {
    const db = new DatabaseSync(this.#path(id), { readOnly: true });
    try {
      return db.prepare(sql).get();
    } finally {
      db.close();
    }
  }

  close() { return this.#repo.close(background); }
}

await serve(Store.open);
