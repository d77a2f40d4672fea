"""The endpoint of the runs that label, of texts and of files."""

from __future__ import annotations

from dragoman.serving.http.refusals import Refusal, missing_field
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Endpoints, Service
from dragoman.tasks.classification.served import ClassifyAnswer, ClassifyRequest, ServedClassifier
from dragoman.tasks.classification.served_files import ServedFileClassifier


def endpoints(service: Service) -> Endpoints:
    """The endpoint over one server."""
    routes = Endpoints(service)

    @routes.answers(
        "/classify", ClassifyRequest, ClassifyAnswer, "Give texts or files their labels", files=True
    )
    async def classify(request: ClassifyRequest, client: str) -> bytes:
        """With the probability of each label; with `why` also what each word has to do with the
        most probable one, by a gradient and by attention. The two often disagree, and neither is a
        reason. A run that reads pictures or recordings takes them as `file`, in a form or in
        base64; with `seen` it also gives what it sees of them."""
        run = _chosen(service, request)
        if isinstance(run, ServedFileClassifier):
            return await files(run, request, client)
        assert isinstance(run, ServedClassifier)
        return await texts(run, request, client)

    async def texts(run: ServedClassifier, request: ClassifyRequest, client: str) -> bytes:
        assert request.text is not None
        given = service.check_texts(request.text, client)
        run.check(given, request)
        found = dict(await run.asking.all(client, run.label(given, request)))
        service.meters.count_characters(run.name, client, sum(map(len, given)))
        answer = ClassifyAnswer(
            run=run.name,
            longest=run.predictor.longest,
            texts=[found[number] for number in range(len(given))],
        )
        return await service.written(client, lambda: answer)

    async def files(run: ServedFileClassifier, request: ClassifyRequest, client: str) -> bytes:
        uploads = request.uploads
        run.check(uploads, request)
        opened = await run.opening.all(client, run.opened(uploads))
        rows = await run.decoded(opened, client, run.most_rows(run.predictor.longest))
        run.check_rows(rows, request)
        found = dict(await run.asking.all(client, run.label(opened, rows, request)))
        answer = ClassifyAnswer(
            run=run.name,
            longest=run.predictor.longest,
            files=[found[number] for number in range(len(uploads))],
        )
        return await service.written(client, lambda: answer)

    return routes


def _chosen(service: Service, request: ClassifyRequest) -> ServedRun:
    """The run that is named, or the first that reads what was sent. Raises Refusal 400 or 404."""
    has_files = bool(request.uploads)
    if request.text is not None and has_files:
        told = "give either text or file, not both"
        raise Refusal("bad_field", f"Invalid request: {told}", field="file", problem=told)
    catalogue, named = service.catalogue, request.run
    if named and (run := catalogue.named(named)) and run.task == ServedClassifier.task:
        if has_files != run.takes_files and (has_files or request.text is not None):
            sent = "file" if run.takes_files else "text"
            raise Refusal(
                "other_source",
                f"{run.name} reads {run.reads}: send them as {sent}.",
                run=run.name,
                reads=run.reads,
            )
        if not has_files and request.text is None:
            raise missing_field("file" if run.takes_files else "text")
        return run
    if has_files:
        return catalogue.of(ServedFileClassifier, named)
    if request.text is None:
        raise missing_field("text")
    return catalogue.of(ServedClassifier, named)
