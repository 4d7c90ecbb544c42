// Pi's JSONL sessions, as a host uses them. All of a session is in memory once it
// is open, and a write is not synced.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { buildSessionContext, JsonlSessionRepo, NodeExecutionEnv } from "@earendil-works/pi-agent-core/node";
import { each, NotRun, Recent, serve, timed } from "./serve.mjs";

const cwd = "/project";

class Store {
  #dir;
  #repo;
  #recent = new Recent();

  constructor(dir) {
    this.#dir = dir;
    this.#repo = new JsonlSessionRepo({ fs: new NodeExecutionEnv({ cwd: dir }), sessionsRoot: dir });
  }

  #session(id) {
    return this.#recent.get(id, async () => this.#opened(await this.#repo.open({ path: await this.#path(id) })));
  }

  #opened(session) { return { session, close: () => {} }; }

  async #files() {
    const names = await readdir(this.#dir, { recursive: true });
    return names.filter((name) => name.endsWith(".jsonl")).map((name) => join(this.#dir, name));
  }

  async #path(id) {
    const path = (await this.#files()).find((path) => path.endsWith(`_${id}.jsonl`));
    if (path === undefined) throw new Error(`there is no file of session ${id}`);
    return path;
  }

  async create({ session: id }) {
    const { value: session, reply } = await timed(() => this.#repo.create({ id, cwd }));
    await this.#recent.put(id, this.#opened(session));
    return { ...reply, count: 1 };
  }

  async leave({ session: id }) {
    await this.#recent.close(id);
    return {};
  }

  // It has no way to append many at a time.
  async build({ session: id, lines }) {
    const { session } = await this.#session(id);
    const entries = lines.map((line) => JSON.parse(line));
    const { reply } = await timed(async () => {
      for (const entry of entries) await session.getStorage().appendEntry(entry);
    });
    return { ...reply, count: lines.length, leaf: (await session.getLeafId()) ?? "" };
  }

  async batch({ session: id, lines }) {
    const { session } = await this.#session(id);
    const messages = lines.map((line) => JSON.parse(line));
    const { reply } = await timed(async () => {
      for (const message of messages) await session.appendMessage(message);
    });
    return { ...reply, count: lines.length, leaf: await session.getLeafId() };
  }

  async append({ session: id, lines, writers }) {
    if (writers > 1) throw new NotRun("it takes one append at a time");
    const { session } = await this.#session(id);
    const messages = lines.map((line) => JSON.parse(line));
    const reply = await each(messages, 1, (message) => session.appendMessage(message));
    return { ...reply, leaf: await session.getLeafId() };
  }

  async appendAt({ session: id, entry, lines }) {
    const { session } = await this.#session(id);
    const message = JSON.parse(lines[0]);
    const { value: leaf, reply } = await timed(async () => {
      await session.moveTo(entry);
      return session.appendMessage(message);
    });
    return { ...reply, count: 1, leaf };
  }

  async move({ session: id, entry }) {
    const { session } = await this.#session(id);
    const { reply } = await timed(() => session.moveTo(entry || null));
    return { ...reply, count: 1, leaf: entry ?? "" };
  }

  async branch({ session: id, entry }) {
    const { session } = await this.#session(id);
    const { value: entries, reply } = await timed(() => session.getBranch(entry || undefined));
    return { ...reply, count: entries.length };
  }

  async #context(session, entry) {
    return entry ? buildSessionContext(await session.getBranch(entry)) : session.buildContext();
  }

  async context({ session: id, entry }) {
    const { session } = await this.#session(id);
    const { value: context, reply } = await timed(() => this.#context(session, entry));
    return { ...reply, count: context.messages.length };
  }

  async turn({ session: id, lines }) {
    const { session } = await this.#session(id);
    const messages = lines.map((line) => JSON.parse(line));
    const { reply: appended } = await timed(async () => {
      for (const message of messages) await session.appendMessage(message);
    });
    const { value: context, reply: built } = await timed(() => session.buildContext());
    const leaf = await session.getLeafId();
    return { nanos: appended.nanos + built.nanos, each: [appended.nanos, built.nanos], count: context.messages.length, leaf };
  }

  async fork({ session: id, newSession, entry }) {
    const { session } = await this.#session(id);
    const options = { id: newSession, cwd, ...(entry ? { entryId: entry, position: "at" } : {}) };
    const metadata = await session.getMetadata();
    const { value: forked, reply } = await timed(() => this.#repo.fork(metadata, options));
    await this.#recent.put(newSession, this.#opened(forked));
    return { ...reply, count: (await forked.getEntries()).length };
  }

  async list({ limit }) {
    if (limit) throw new NotRun("it has no pages of sessions");
    const { value: sessions, reply } = await timed(() => this.#repo.list());
    return { ...reply, count: sessions.length };
  }

  async stream({ session: id }) {
    const { session } = await this.#session(id);
    const { value: count, reply } = await timed(async () => {
      for (let n = 0; ; ) {
        const page = await session.getEntries({ afterEntrySeq: n, limit: 1000 });
        if (page.length === 0) return n;
        n += page.length;
      }
    });
    return { ...reply, count };
  }

  async size() {
    let bytes = 0;
    for (const path of await this.#files()) bytes += (await stat(path)).size;
    return { bytes };
  }

  close() {}
}

await serve(async ({ dir }) => new Store(dir));
